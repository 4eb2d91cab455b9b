import { defineConfig } from 'vite';
import relay from 'vite-plugin-relay';
import { proxy } from '../shared/vite.ts';

export default defineConfig({ plugins: [relay], server: { proxy } });
