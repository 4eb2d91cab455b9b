import { defineConfig } from 'vite';
import { proxy } from '../shared/vite.ts';

export default defineConfig({ server: { proxy } });
